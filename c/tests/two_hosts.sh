#!/bin/sh
# two_hosts.sh MBIT_PER_S WRITER READER: runs the command READER on one host and WRITER on another. Hosts are network namespaces, joined by a
# veth on which the writer's side has a token bucket in front of a queue of 2 MB. Fails if one of both does, after two minutes at the latest.
# Code 77, and a sentence, where namespaces cannot be made.
set -u
if [ "${HOST:-}" = reader ]; then
    read -r _ # until the cable is there
    exec sh -c "$3"
fi
if [ "${HOST:-}" = writer ]; then
    set -e
    ip link set lo up
    pipe=$(mktemp -u) && mkfifo -m 600 "$pipe"
    HOST=reader unshare -n "$0" "$@" <"$pipe" &
    reader=$!
    exec 3>"$pipe"
    rm -f "$pipe"
    there() { nsenter --net=/proc/$reader/ns/net "$@"; }
    while [ "$(readlink /proc/$reader/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do :; done
    ip link add name cable type veth peer name cable netns "$reader"
    ip addr add 10.77.0.1/24 dev cable
    there ip addr add 10.77.0.2/24 dev cable
    there ip link set lo up
    there ip link set cable up
    ip link set cable up
    tc qdisc replace dev cable root tbf rate "$1mbit" burst 4kb limit 2097152
    echo >&3
    exec 3>&-
    set +e
    sh -c "$2"
    code=$?
    [ $code = 0 ] || kill $reader
    wait $reader && exit $code
    exit 1
fi
if ! why=$(unshare -n sh -c 'ip link add name trial type veth peer name other && tc qdisc replace dev trial root tbf rate 1mbit burst 4kb limit 9999' 2>&1); then
    echo "skipped, it needs CAP_NET_ADMIN, iproute2 and tbf: $why"
    exit 77
fi
HOST=writer exec timeout 120 unshare -n "$0" "$@"
