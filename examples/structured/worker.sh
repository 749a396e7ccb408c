#!/bin/sh
# A process of the fleet: it does nothing, and stops when it is told to, or when the directory that it came from is gone.
trap 'exit 0' TERM
while [ -e worker.sh ]; do
    sleep 1 &
    wait "$!"
done
