#!/bin/sh
# A process of the fleet: it does nothing, and stops when it is told to.
trap 'exit 0' TERM
while :; do
    sleep 1 &
    wait "$!"
done
