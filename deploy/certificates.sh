#!/bin/sh
# Make the certificates of the servers of NATS in tls/: an authority of their own, and one certificate for all of them.
#
#   sh certificates.sh [NAME...]
#
# The names are those that the servers have for each other and for replicas. Keep tls/nats-ca-key.pem for the next
# certificate, on no server.
set -eu
umask 077
[ $# -gt 0 ] || set -- nats-0.nats nats-1.nats nats-2.nats
names=""
for name in "$@"; do names="$names,DNS:$name"; done
mkdir -p tls
openssl req -x509 -newkey rsa:3072 -nodes -days 3650 -subj "/CN=NATS of jumpseat" \
    -keyout tls/nats-ca-key.pem -out tls/nats-ca.pem
openssl req -newkey rsa:3072 -nodes -subj "/CN=$1" -keyout tls/nats-key.pem -out tls/nats.csr
printf 'subjectAltName=%s\n' "${names#,}" > tls/nats.ext
openssl x509 -req -days 825 -in tls/nats.csr -CA tls/nats-ca.pem -CAkey tls/nats-ca-key.pem -CAcreateserial \
    -extfile tls/nats.ext -out tls/nats.pem
chmod 644 tls/nats-ca.pem tls/nats.pem
rm tls/nats.csr tls/nats.ext
