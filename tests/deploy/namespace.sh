#!/bin/bash
# namespace.sh FOLDER SITE ROOT UNIT: systemd as process 1 of namespaces of its own, with one unit and a world made for it.
#
# Mounts are seen by nobody else: /run, /etc, /opt, /var/lib and /var/cache are copies or empty, and of cgroups there is
# only version 2, below a group of our own, whose controllers are none of ours. FOLDER has the configuration, config.yaml,
# what the daemon reads, and drop-in.conf for the unit; its log is written there. SITE has the packages, ROOT the code.
set -euo pipefail
folder=$1 site=$2 root=$3 unit=$4

mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/etc /run/var/lib /run/var/cache /run/systemd/system
cp -a /etc/. /run/etc/
mount --bind /run/etc /etc
mount --bind /run/var/lib /var/lib
mount --bind /run/var/cache /var/cache
rm -rf /etc/systemd /etc/machine-id
mkdir -p /etc/systemd /etc/sysusers.d /etc/streamkernel
echo 0123456789abcdef0123456789abcdef > /etc/machine-id
cp "$(dirname "$unit")/sysusers.conf" /etc/sysusers.d/streamkernel.conf
systemd-sysusers streamkernel.conf
cp "$folder/config.yaml" /etc/streamkernel/streamkernel.yaml
install -d -o streamkernel -g streamkernel /var/lib/streamkernel
cp "$folder/stream.csv" /var/lib/streamkernel/

mount -t tmpfs tmpfs /opt
mkdir -p /opt/site /opt/code/streamkernel /opt/code/connectors /opt/streamkernel/bin
mount --bind "$site" /opt/site
mount --bind "$root/streamkernel" /opt/code/streamkernel
mount --bind "$root/connectors" /opt/code/connectors
# Of the same minor version as the packages, and where everybody may run it.
printf '#!/bin/sh\nexport PYTHONPATH=/opt/site:/opt/code\nexec /usr/bin/python3 -P -m streamkernel "$@"\n' > /opt/streamkernel/bin/streamkernel
chmod 755 /opt/streamkernel/bin/streamkernel

units=/run/systemd/system
for target in sysinit basic shutdown umount network-online multi-user default rescue emergency; do
    printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$target" > "$units/$target.target"
done
install -m 644 "$unit" "$units/streamkernel.service"
mkdir "$units/streamkernel.service.d"
install -m 644 "$folder/drop-in.conf" "$units/streamkernel.service.d/"

umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
export container=namespace SYSTEMD_UNIT_PATH=$units
exec /lib/systemd/systemd --system --unit=default.target --log-target=console --log-level=warning --show-status=0
