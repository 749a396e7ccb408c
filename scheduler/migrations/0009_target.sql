-- Which runner has the job: schema::target::JobTarget. Decided with it; NULL in older rows, of which the runners are asked.
ALTER TABLE jobs ADD COLUMN target TEXT;
