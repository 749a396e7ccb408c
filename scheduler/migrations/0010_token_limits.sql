-- `role` of a token holds one role, or several with commas between; those of before are read as they are.
-- Where it may change something, by names with commas between; NULL, as in older rows, is everywhere.
ALTER TABLE tokens ADD COLUMN applications TEXT;
ALTER TABLE tokens ADD COLUMN channels TEXT;
