#!/bin/sh
# A worker in a shell, for a study that `partita serve` keeps: it needs curl and awk, not Partita.
# sh examples/service.sh [ADDRESS] [EVALUATIONS]
set -eu
base=${1:-http://127.0.0.1:8420} evals=${2:-20}

post() {
    curl --silent --show-error --fail-with-body --request POST \
        --header 'Content-Type: application/json' --data "$2" "$base$1"
}

post /studies '{"name": "shell", "space": {"bounds": [[0, 10], [0, 10]]}}' >/dev/null
i=0
while [ "$i" -lt "$evals" ]; do
    trial=$(post /studies/shell/ask '{}')
    # {"trials":[{"number":0,"params":[1.5,2.5]}]}
    told=$(printf '%s' "$trial" | tr -c 'a-zA-Z0-9.+-' ' ' | awk '{
        printf "{\"number\": %d, \"value\": %.9g}", $3, ($5 - 3) ^ 2 + ($6 - 7) ^ 2
    }')
    post /studies/shell/tell "$told" >/dev/null
    i=$((i + 1))
done
curl --silent --show-error "$base/studies/shell/recommend"
echo
