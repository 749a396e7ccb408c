-- What was refused before that was written down: only the instance that pursues it knew.
UPDATE release_channels SET refused = 1 WHERE EXISTS (
    SELECT 1 FROM instances WHERE instances.release_id = release_channels.release_id AND instances.channel_id = release_channels.channel_id
    AND instances.reason = 'MANUAL_APPROVAL_REJECTED'
);
