#!/bin/sh
# Tells people where the site is, for its readers and for those who look after it.
set -eu
at=$BUCKET/$PVN_RELEASE_CHANNEL
printf '{"outputs": [{"name": "site", "text": "https://%s"}, {"name": "console", "text": "https://%s"}]}\n' \
    "storage.googleapis.com/$at/index.html" "console.cloud.google.com/storage/browser/$at"
