#!/usr/bin/env bash
# Checks what deploy/ has against the tools it is for, and runs what can be run here: the Helm chart (lint, templates, the schemas of
# Kubernetes, the configuration that it renders), the container image, the unit of systemd, the MCP bundle, the bill of materials.
# Needs a built bin/hako. What is not on the machine (buildah, systemd-analyze, npm, pip) is named and fails with TEST_REQUIRE=1.
set -uo pipefail
cd "$(dirname "$0")/.."
helm=$1
tools=$PWD/dist/deploy/tools
work=$PWD/dist/deploy
mkdir -p "$tools"
passed=0 failed=0

# check NAME COMMAND... runs a command and shows what it prints only if it fails.
check() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		passed=$((passed + 1))
		printf 'ok    %s\n' "$name"
	else
		failed=$((failed + 1))
		printf 'FAIL  %s\n%s\n' "$name" "$output"
	fi
}

# need NAME PROGRAM reports whether a program is there.
need() {
	command -v "$2" >/dev/null && return
	printf 'NOT CHECKED: %s, for %s is not here\n' "$1" "$2"
	[ -z "${TEST_REQUIRE:-}" ] || failed=$((failed + 1))
	return 1
}

chart=deploy/helm/hako
helm() { GOBIN=$tools go install "$helm" && "$tools/helm" "$@"; }

# refuses VALUES... MESSAGE holds that the chart does not render with these settings, and says why.
refuses() {
	local message=${*: -1} output
	if output=$("$tools/helm" template t $chart "${@:1:$#-1}" 2>&1); then
		echo 'it rendered'
		return 1
	fi
	grep -qF "$message" <<<"$output" || { printf 'it says: %s\n' "$output"; return 1; }
}

renders() { "$tools/helm" template hako $chart -f deploy/helm/testdata/"$1".yaml >"$work/$1.yaml"; }

# has NAME PATTERN holds that a rendered chart has a line.
has() { grep -qE "$2" "$work/$1.yaml"; }

# accepted NAME holds that hako takes the configuration that the chart renders.
accepted() {
	python3 -c 'import sys, yaml
for o in yaml.safe_load_all(open(sys.argv[1])):
    if o and o["kind"] == "ConfigMap":
        print(o["data"]["hako.yaml"].replace("/plugins", sys.argv[2]))' "$work/$1.yaml" "$work/plugins" >"$work/$1.hako.yaml" &&
		mkdir -p "$work/plugins" && ./bin/hako --config "$work/$1.hako.yaml" config show >"$work/$1.shown"
}

check 'helm lint' helm lint --strict $chart -f deploy/helm/testdata/single.yaml
check 'chart without authentication is refused' refuses 'config.http.auth is not set'
check 'replicas without PostgreSQL are refused' refuses -f deploy/helm/testdata/single.yaml --set replicas=2,persistence.enabled=false 'more than one replica needs a store that they share'
check 'replicas with a volume are refused' refuses -f deploy/helm/testdata/replicas.yaml --set persistence.enabled=true 'persistence is for one replica'
check 'an unknown value is refused' refuses -f deploy/helm/testdata/single.yaml --set replica=2 'replica'
check 'a grace that Kubernetes cannot be told is refused' refuses -f deploy/helm/testdata/single.yaml --set config.shutdown.grace=500ms 'config.shutdown.grace is "500ms"'
for values in single replicas; do
	check "chart renders: $values" renders $values
	check "hako takes its configuration: $values" accepted $values
done
check 'one replica: the embedded store on a claim, one process at a time' has single 'type: Recreate'
check 'one replica: a pod has 20 seconds more than the usual grace' has single 'terminationGracePeriodSeconds: 140$'
check 'replicas: a pod has 20 seconds more than shutdown.grace' has replicas 'terminationGracePeriodSeconds: 5435$'
check 'replicas: a disruption budget' has replicas 'kind: PodDisruptionBudget'
check 'replicas: autoscaling on a metric of hako' has replicas 'name: hako_calls_in_flight'
check 'replicas: rolling update without a gap' has replicas 'maxUnavailable: 0'
check 'replicas: a network policy without private addresses' has replicas '169.254.0.0/16'
check 'replicas: a ServiceMonitor' has replicas 'kind: ServiceMonitor'
check 'replicas: rules for Prometheus' has replicas 'kind: PrometheusRule'
check 'replicas: non-root, read-only root' has replicas 'readOnlyRootFilesystem: true'
if need 'schemas of Kubernetes' pip; then
	[ -d "$tools/validate" ] || pip install -q --disable-pip-version-check --target "$tools/validate" kubernetes-validate==1.37.0 pyyaml >"$work/pip.log" 2>&1
	for values in single replicas; do
		check "Kubernetes takes it: $values" env PYTHONPATH="$tools/validate" "$tools/validate/bin/kubernetes-validate" --strict --quiet "$work/$values.yaml"
	done
fi

# image builds the container image and runs the program in it as its user with a root that cannot be written.
image() {
	local name=localhost/hako:check container root
	make image IMAGE=$name BUILDER=buildah && container=$(buildah from $name) && root=$(buildah mount "$container") || return 1
	(
		set -e
		[ "$(buildah inspect --format '{{.OCIv1.Config.User}}' $name)" = 65532:65532 ]
		[ "$(find "$root" -type f | wc -l)" = 1 ] # the program, and nothing else
		mkdir -p "$work/state" && chown 65532:65532 "$work/state"
		unshare --mount sh -c '
			mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && mount --bind "$2" "$1/var/lib/hako"
			HOME=/var/lib/hako exec chroot --userspec=65532:65532 "$1" /usr/bin/hako -C /var/lib/hako tools' sh "$root" "$work/state" | grep get_weather >/dev/null
	)
	local status=$?
	buildah umount "$container" >/dev/null
	buildah rm "$container" >/dev/null
	return $status
}
if need 'container image' buildah; then
	check 'the container image has one file, runs as 65532 with a read-only root' image
fi

# unit checks the unit with the program where the package puts it.
unit() {
	sed "s|/usr/bin/hako|$PWD/bin/hako|" deploy/systemd/hako.service >"$work/hako.service"
	systemd-analyze verify --man=no "$work/hako.service" && systemd-analyze security --offline=yes --threshold=15 "$work/hako.service" | tail -n 1
}
if need 'unit of systemd' systemd-analyze; then
	check 'systemd-analyze verify, exposure at most 1.5' unit
fi
check 'hako takes the configuration of the package' ./bin/hako --config deploy/systemd/hako.yaml config show

bundle() {
	[ -d "$tools/node_modules" ] || npm install --prefix "$tools" --no-audit --no-fund --no-package-lock --loglevel=error @anthropic-ai/mcpb@2.1.2 || return 1
	go run ./scripts/mcpb -version 0.1.0 -out "$work" linux/amd64=bin/hako && unzip -qo "$work/hako_0.1.0_linux_amd64.mcpb" -d "$work/bundle" &&
		"$tools/node_modules/.bin/mcpb" validate "$work/bundle/manifest.json" &&
		"$work/bundle/server/hako" --directory "$work/bundle" tools | grep get_weather >/dev/null
}
if need 'MCP bundle' npm; then
	check 'the MCP bundle is valid and its program runs' bundle
fi
check 'bill of materials' go run ./scripts/sbom -o "$work/hako.cdx.json" bin/hako cmd/hako/shipped

printf '%d passed, %d failed\n' $passed $failed
[ $failed = 0 ]
