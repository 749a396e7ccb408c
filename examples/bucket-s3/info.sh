#!/bin/sh
# Tells people where the site is, for its readers and for those who look after it.
set -eu
at=$BUCKET.s3.$AWS_REGION.amazonaws.com/$PVN_RELEASE_CHANNEL/index.html
console="https://$AWS_REGION.console.aws.amazon.com/s3/buckets/$BUCKET?region=$AWS_REGION&prefix=$PVN_RELEASE_CHANNEL/"
printf '{"outputs": [{"name": "site", "text": "https://%s"}, {"name": "console", "text": "%s"}]}\n' "$at" "$console"
