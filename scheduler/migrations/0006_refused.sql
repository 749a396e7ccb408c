-- Whether somebody rejected an approval of the release in this channel and nobody has asked anew: what was refused and never began
-- took nothing back.
ALTER TABLE release_channels ADD COLUMN refused BIGINT NOT NULL DEFAULT 0;
