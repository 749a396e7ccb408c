#!/bin/sh
# Makes a Debian package and a tarball of the static programs, with man pages, completion, the documentation and a systemd
# unit, and prints their paths. `images/build-packages.sh DIR` takes the programs that are in DIR instead of building them.
set -eu
programs=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."

metadata=$(cargo metadata --locked --no-deps --format-version 1)
built=$(printf '%s' "$metadata" | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
if [ -z "$programs" ]; then
    images/build-scheduler.sh >/dev/null
    programs="$built/$(uname -m)-unknown-linux-gnu/dist"
fi
version=$(printf '%s' "$metadata" | sed -n 's/.*"name":"pvn-scheduler","version":"\([^"]*\)".*/\1/p')
machine=$(uname -m)
case $machine in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*) architecture=$machine ;;
esac
# The same sources make the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

out="$built/packages"
mkdir -p "$out"
root=$(mktemp -d "$out/root-XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
cd images/packages

# What both have, by its place below /usr.
for program in pvn-scheduler pvnctl pvn-wrapper; do
    install -D -s -m 755 "$programs/$program" "$root/usr/bin/$program"
done
share="$root/usr/share"
"$programs/pvnctl" reference man "$share/man/man1" >/dev/null
gzip -9 -n "$share/man/man1/"*
for shell in bash-completion/completions/pvnctl zsh/vendor-completions/_pvnctl fish/vendor_completions.d/pvnctl.fish; do
    mkdir -p "$share/${shell%/*}"
    name=${shell%%/*}
    "$programs/pvnctl" completion "${name%-completion}" >"$share/$shell"
done
install -D -m 644 ../../LICENSE "$share/doc/pvn/copyright"
install -m 644 ../../README.md "$share/doc/pvn/README.md"
cp -R ../../docs ../../examples "$share/doc/pvn/"
install -D -m 644 pvn-scheduler.service "$root/usr/lib/systemd/system/pvn-scheduler.service"
install -D -m 644 sysusers.conf "$root/usr/lib/sysusers.d/pvn.conf"
chmod -R u=rwX,go=rX "$root"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

tarball="$out/pvn-$version-$machine-linux.tar.gz"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime "@$SOURCE_DATE_EPOCH" --directory "$root/usr" \
    --transform "s,^\.,pvn-$version," . | gzip -6 -n >"$tarball"
echo "$tarball"

if ! command -v dpkg-deb >/dev/null; then
    echo 'no Debian package: there is no dpkg-deb' >&2
    exit 0
fi
install -D -m 644 default "$root/etc/default/pvn-scheduler"
mkdir "$root/DEBIAN"
install -m 755 postinst prerm postrm "$root/DEBIAN/"
echo /etc/default/pvn-scheduler >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<END
Package: pvn
Version: $version
Architecture: $architecture
Maintainer: pvn maintainers <maintainers@pvn.dev>
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Recommends: ca-certificates
Section: admin
Priority: optional
Description: continuous delivery by any command-line tool
 pvn-scheduler looks whether there is work, asks where approval is wanted, and
 runs what does it, as a local process or a Kubernetes Job; pvnctl is its
 client, and pvn-wrapper runs the commands.
END
package="$out/pvn_${version}_$architecture.deb"
dpkg-deb -Zgzip --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
