#!/usr/bin/env bash
# A worker in bash with curl and jq, written from docs/reference/worker-protocol.md.
#
#   BETIMES_URL=http://127.0.0.1:8090 BETIMES_API_KEY=btm_wk_… examples/worker.sh
#
# One run at a time. Handlers: `echo` returns its payload, `sum` adds up {"numbers": […]}.
set -uo pipefail

base="${BETIMES_URL:-http://127.0.0.1:8090}"
queues="${BETIMES_QUEUES:-default}"
lease="" draining=0 beating=""

# ask PATH BODY [SECONDS]: the answer goes to $answer, its status to $status; what may be temporary is asked again.
ask() {
  local tried=0 told
  while :; do
    told="$(printf 'header = "Authorization: Bearer %s"\n' "$BETIMES_API_KEY" |
      curl --silent --config - --max-time "${3:-15}" --request POST --write-out '\n%{http_code}' \
        --header 'Content-Type: application/json' --data "$2" "$base$1")" || told=$'\n000'
    status="${told##*$'\n'}" answer="${told%$'\n'*}"
    case "$status" in
      000 | 429 | 5??) tried=$((tried + 1)); sleep "0.$((RANDOM % 9 + 1))"; [ "$tried" -lt 100 ] || return 1 ;;
      *) return 0 ;;
    esac
  done
}

seconds() { # PT1M30S → 90
  local text="${1#PT}" total=0
  [[ $text =~ ^([0-9]+)H(.*)$ ]] && total=$((total + 3600 * BASH_REMATCH[1])) text="${BASH_REMATCH[2]}"
  [[ $text =~ ^([0-9]+)M(.*)$ ]] && total=$((total + 60 * BASH_REMATCH[1])) text="${BASH_REMATCH[2]}"
  [[ $text =~ ^([0-9]+)(\.[0-9]+)?S$ ]] && total=$((total + BASH_REMATCH[1]))
  echo $((total > 0 ? total : 1))
}

register() {
  ask /v1/workers "$(jq -nc --arg name "bash-$$" --arg queues "$queues" --argjson pid "$$" \
    '{name: $name, queues: ($queues / ","), handlers: ["echo", "sum"], slots: 1, pid: $pid, sdk: {name: "example-bash"}}')"
  [ "$status" = 201 ] || { echo "expected 201, got $status: $answer" >&2; exit 1; }
  worker="$(jq -r .worker_id <<<"$answer")"
  ttl="$(seconds "$(jq -r .lease_duration <<<"$answer")")"
  every="$(seconds "$(jq -r .heartbeat_interval <<<"$answer")")"
}

# Renews one lease until it is killed; ends by itself when the lease is lost or the run is cancelled.
beats() {
  while :; do
    ask "/v1/workers/$worker/heartbeat" "{\"running\": [{\"lease_id\": \"$1\"}]}"
    [ "$status" = 200 ] && jq -e --arg lease "$1" \
      '(.lost | index($lease)) or any(.commands[]; .lease_id == $lease)' <<<"$answer" >/dev/null && return
    sleep "$every"
  done
}

handle() { # HANDLER PAYLOAD: the result on stdout, or what went wrong on stderr
  case "$1" in
    echo) printf '%s' "$2" ;;
    sum) jq -e '.numbers | add' <<<"$2" ;;
    *) echo "no handler $1" >&2; return 1 ;;
  esac
}

execute() { # one run, as JSON
  local run="$1" result problem
  lease="$(jq -r .lease_id <<<"$run")"
  beats "$lease" & beating=$!
  problem="$(mktemp)"
  if result="$(handle "$(jq -r .handler <<<"$run")" "$(jq -c '.payload // null' <<<"$run")" 2>"$problem")"; then
    ask "/v1/leases/$lease/complete" "$(jq -nc --argjson result "$result" '{result: $result}')"
  else
    ask "/v1/leases/$lease/fail" "$(jq -nc --arg told "$(cat "$problem")" '{error: {type: "HandlerFailed", message: $told}}')"
  fi
  [ "$status" = 200 ] || echo "the report was refused: $answer" >&2
  rm -f "$problem"
  kill "$beating" 2>/dev/null; wait "$beating" 2>/dev/null
  lease=""
}

trap 'draining=1' TERM INT
register
echo "registered as $worker"
while [ "$draining" = 0 ]; do
  wait=$((ttl / 3 > 0 ? ttl / 3 : 1))
  ask "/v1/workers/$worker/lease" "{\"max\": 1, \"wait\": $wait}" $((wait + 10)) || continue
  case "$status" in
    200) while IFS= read -r run; do execute "$run"; done < <(jq -c '.runs[]' <<<"$answer")
         [ "$(jq '.runs | length' <<<"$answer")" = 0 ] && ask "/v1/workers/$worker/heartbeat" '{"running": []}' ;;
    404) register ;;
    409) draining=1 ;;
    *) echo "expected 200, got $status: $answer" >&2; exit 1 ;;
  esac
done
ask "/v1/workers/$worker/leave" '{}'
echo "left"
