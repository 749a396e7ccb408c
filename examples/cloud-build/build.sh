# Read by the commands: finds the build of a commit, and says how it stands.
# shellcheck shell=sh
# shellcheck disable=SC2034 # used by the commands that read this file

export CLOUDSDK_CORE_DISABLE_PROMPTS=1 CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=1 TERM=dumb

# How many builds of the trigger are looked through, the newest first. A commit whose build is older counts as not built.
builds_limit=200

# A short one would start a build, and never be found again: builds have the whole.
case $COMMIT in
*[!0-9a-f]*) commit_is=wrong ;;
????????????????????????????????????????) commit_is=right ;;
*) commit_is=wrong ;;
esac
if [ "$commit_is" = wrong ]; then
    echo "$COMMIT is no commit: 40 digits of 0-9 and a-f are needed" >&2
    exit 1
fi

# What went wrong stands in gcloud's first line, and pvn shows people the last one: so that one is said again.
builds() {
    code=0
    { errors=$(gcloud builds "$@" --project="$PROJECT" --region="$REGION" 2>&1 >&3) || code=$?; } 3>&1
    [ -z "$errors" ] || printf '%s\n' "$errors" >&2
    [ "$code" = 0 ] || printf '%s\n' "$errors" | grep -m 1 '^ERROR: ' >&2 || :
    return "$code"
}

# Sets build (its id, empty if there is none), status and log: the newest build of this commit for this channel; and stray, the
# newest one of this commit for no channel, which is not taken for one of this.
find_build() {
    trigger_id=$(builds triggers describe "$TRIGGER" --format='value(id)')
    # Only this filter is the server's own: any other term makes gcloud get all builds of the project.
    list=$(builds list --filter="trigger_id=\"$trigger_id\"" --limit="$builds_limit" --page-size="$builds_limit" \
        --format='value[separator="|"](substitutions.COMMIT_SHA,substitutions._CHANNEL,id,status,logUrl)')
    found=$(printf '%s\n' "$list" | awk -F '|' -v commit="$COMMIT" -v channel="$PVN_RELEASE_CHANNEL" '
        $1 == commit && $2 == channel && !n++ { print $3 "|" $4 "|" $5 }')
    IFS='|' read -r build status log <<END
$found
END
    stray=$(printf '%s\n' "$list" | awk -F '|' -v commit="$COMMIT" '$1 == commit && $2 == "" && !n++ { print $3 }')
}

# Sets status, log and reason (why it failed; empty if nobody says) of $build.
describe_build() {
    described=$(builds describe "$build" --format='value[separator="|"](status,logUrl,statusDetail,failureInfo.detail)') || return
    IFS='|' read -r status log detail failure <<END
$(printf '%s' "$described" | tr '\n' ' ')
END
    # Spaces and bars at the ends are what an empty field leaves.
    reason=$(printf '%s' "${failure:-${detail:-}}" | sed 's/[| ]*$//')
}

# A text as a part of a JSON string.
quoted() {
    printf '%s' "$1" | tr '\n' ' ' | tr -d '\000-\037' | sed 's/[\\"]/\\&/g'
}
