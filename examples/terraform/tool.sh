# Read by the two commands: which program to run, and how it behaves without a person.
# shellcheck shell=sh

export TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1

# shellcheck disable=SC2034 # used by the commands that read this file
tool=$(command -v terraform || command -v tofu) || {
    echo 'neither terraform nor tofu is on PATH: install one of them' >&2
    exit 127
}
