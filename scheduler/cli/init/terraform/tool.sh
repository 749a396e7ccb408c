# Read by the two commands: which program to run, and how it behaves without a person.
# shellcheck shell=sh

export TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1

# Each channel has its own: what may be thrown away in the directory that pvn gives it, the state in one that stays.
export TF_DATA_DIR="$PVN_INSTANCE_DIR/terraform"
# shellcheck disable=SC2034 # used by the commands that read this file
plan=$PVN_INSTANCE_DIR/tf.plan
state=out/$PVN_RELEASE_CHANNEL/terraform.tfstate

initialize() {
    mkdir -p "out/$PVN_RELEASE_CHANNEL"
    "$tool" init -no-color -reconfigure -backend-config="path=$state"
}

# shellcheck disable=SC2034 # used by the commands that read this file
tool=$(command -v terraform || command -v tofu) || {
    echo 'neither terraform nor tofu is on PATH: install one of them' >&2
    exit 127
}
