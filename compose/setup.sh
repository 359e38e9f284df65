#!/usr/bin/env bash
# Installs the brokers of the lab on a machine without Docker: Redis, RabbitMQ,
# PostgreSQL and Java from Debian's packages, Kafka's jars through Maven. What is
# there already is left alone, and so are services that run: the lab starts
# brokers of its own and needs none of the system's.
#
#   compose/setup.sh           install what is missing
#   compose/setup.sh --check   say what is missing, change nothing; exit 1 if anything is
#   compose/setup.sh --peers   also what only queuelab peers needs: RabbitMQ PerfTest's jars
#   compose/setup.sh --tests   also what only the tests need: those jars, Chromium and a Chinese font
set -euo pipefail

kafka_version=4.3.1
perftest_version=2.22.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}
[ "$(uname -s)" = Darwin ] && cache=$HOME/Library/Caches
kafka_home=$cache/queuelab/kafka-$kafka_version
kafka_libs=${QUEUELAB_KAFKA_LIBS:-$kafka_home/libs}
perftest_home=$cache/queuelab/perf-test-$perftest_version
perftest_libs=${QUEUELAB_PERFTEST_LIBS:-$perftest_home/libs}

check=no tests=no peers=no
case "${1:-}" in
  "") ;;
  --check) check=yes ;;
  --peers) peers=yes ;;
  --tests) tests=yes peers=yes ;;
  *) echo "usage: $0 [--check|--peers|--tests]" >&2; exit 2 ;;
esac

say() { echo "setup: $*"; }
first() { for f in "$@"; do [ -e "$f" ] && return 0; done; return 1; }

have_redis()    { command -v redis-server >/dev/null; }
have_rabbitmq() { first /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server /opt/rabbitmq/sbin/rabbitmq-server && command -v erl >/dev/null; }
have_postgres() { command -v initdb >/dev/null || first /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb; }
have_java()     { { [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ]; } || command -v java >/dev/null; }
have_kafka()    { first "$kafka_libs"/kafka_2.13-*.jar; }
have_perftest() { [ "$peers" = no ] || first "$perftest_libs"/perf-test-*.jar; }
have_browser()  { [ "$tests" = no ] || { command -v chromium >/dev/null && first /usr/share/fonts/opentype/noto/NotoSansCJK-*.ttc; }; }
have_docker()   { command -v docker >/dev/null && docker compose version >/dev/null 2>&1 && docker info >/dev/null 2>&1; }

missing() {
  for what in redis rabbitmq postgres java kafka perftest browser; do
    "have_$what" || echo "$what"
  done
}

if [ "$check" = yes ] && ! peers=yes have_perftest; then
  say "RabbitMQ PerfTest's jars are not here; only queuelab peers needs them, and make peers fetches them"
fi
lacking=$(missing | paste -sd' ' -)
if [ -z "$lacking" ]; then
  say "Redis, RabbitMQ, PostgreSQL, Java and Kafka's jars are here"
  exit 0
fi
say "missing: $lacking"

if [ "$check" = yes ]; then
  if have_docker; then say "Docker Compose answers and will run these in containers"; exit 0; fi
  say "get them with: make setup"
  exit 1
fi

if ! command -v apt-get >/dev/null; then
  if have_docker; then
    say "no apt-get here; Docker Compose answers and will run these in containers"
    exit 0
  fi
  say "no apt-get here and no Docker engine with Compose answers; start Docker, or install them yourself" >&2
  exit 1
fi

root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else say "root is needed for: $*" >&2; return 1
  fi
}

# The first of several package names that this release has.
offered() {
  for p in "$@"; do
    if apt-cache show "$p" >/dev/null 2>&1; then echo "$p"; return; fi
  done
  say "this release has none of the packages $*" >&2
  return 1
}

wanted=()
have_redis    || wanted+=("redis-server")
have_rabbitmq || wanted+=("rabbitmq-server")
have_postgres || wanted+=("postgresql-15 postgresql")
have_java     || wanted+=("openjdk-17-jre-headless default-jre-headless")
have_browser  || wanted+=("chromium" "fonts-noto-cjk")
{ have_kafka && have_perftest; } || command -v mvn >/dev/null || wanted+=("maven")

if [ ${#wanted[@]} -gt 0 ]; then
  say "reading the package lists"
  root apt-get update -qq
  packages=()
  for names in "${wanted[@]}"; do
    # shellcheck disable=SC2086 # a list of names
    packages+=("$(offered $names)")
  done
  # Debian starts what it installs. Nothing needs these services, so that they
  # are told not to start, unless this machine has a policy of its own.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'root rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | root tee "$policy" >/dev/null
    root chmod 755 "$policy"
  fi
  say "installing ${packages[*]}"
  root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" </dev/null >/dev/null
fi

dependency() { echo "    <dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }

# fetch NAME ARTIFACT VERSION HOME VARIABLE DEPENDENCIES: the jars of those and of
# all that they need, into HOME/libs.
fetch() {
  local name=$1 artifact=$2 version=$3 home=$4 variable=$5 dependencies=$6
  if [ -n "${!variable:-}" ]; then
    say "$variable is set and holds no $name; unset it, or put the jars there" >&2
    exit 1
  fi
  if ! command -v mvn >/dev/null; then
    say "$name's jars come through Maven, which is missing: install it with apt-get install maven" >&2
    exit 1
  fi
  mkdir -p "$home"
  exec 9>"$home/lock"
  command -v flock >/dev/null && flock 9 # another set-up may be at it
  if ! "have_$artifact"; then
    say "fetching $name $version through Maven into $home"
    cat > "$home/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>queuelab</groupId><artifactId>$artifact</artifactId><version>$version</version>
  <dependencies>
$dependencies
  </dependencies>
</project>
EOF
    rm -rf "$home/libs.part"
    mvn -q -B -f "$home/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$home/libs.part" </dev/null
    mv "$home/libs.part" "$home/libs"
  fi
  exec 9>&-
}

if ! have_kafka; then
  fetch Kafka kafka "$kafka_version" "$kafka_home" QUEUELAB_KAFKA_LIBS \
    "$(dependency org.apache.kafka kafka_2.13 "$kafka_version"
       dependency org.apache.kafka kafka-tools "$kafka_version"
       dependency org.slf4j slf4j-simple 1.7.36)"
fi
if ! have_perftest; then
  fetch PerfTest perftest "$perftest_version" "$perftest_home" QUEUELAB_PERFTEST_LIBS \
    "$(dependency com.rabbitmq perf-test "$perftest_version")"
fi

lacking=$(missing | paste -sd' ' -)
if [ -n "$lacking" ]; then
  say "still missing: $lacking" >&2
  exit 1
fi
say "done"
