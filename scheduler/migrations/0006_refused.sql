-- Whether somebody rejected an approval of the release in this channel and nobody has asked anew: what was refused and never began
-- took nothing back. Until now only the instance that pursues it knew.
ALTER TABLE release_channels ADD COLUMN refused BIGINT NOT NULL DEFAULT 0;
UPDATE release_channels SET refused = 1 WHERE EXISTS (
    SELECT 1 FROM instances WHERE instances.release_id = release_channels.release_id AND instances.channel_id = release_channels.channel_id
    AND instances.reason = 'MANUAL_APPROVAL_REJECTED'
);
