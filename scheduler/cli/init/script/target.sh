# Read by the commands: what each of them works on. Every release channel has its own, so none gets in another's way.
# shellcheck shell=sh disable=SC2034
target=out/$PVN_RELEASE_CHANNEL/message.txt
