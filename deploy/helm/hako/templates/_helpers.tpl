{{- define "hako.name" -}}
{{- if contains "hako" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-hako" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "hako.selector" -}}
app.kubernetes.io/name: hako
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hako.labels" -}}
{{ include "hako.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "hako.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "hako.name" .) }}
{{- end }}

{{/* Whether several replicas may run: their store is PostgreSQL, named in the configuration or in the Secret. */}}
{{- define "hako.shared" -}}
{{- $store := .Values.config.store | default "" | toString -}}
{{- if or (hasPrefix "postgres://" $store) (hasPrefix "postgresql://" $store) (and .Values.secret (not $store)) }}true{{ end }}
{{- end }}

{{- define "hako.check" -}}
{{- $auth := dig "http" "auth" dict .Values.config }}
{{- if not (or $auth.tokens $auth.oauth) }}
{{- fail "config.http.auth is not set: hako takes no calls from other machines without authentication. \"hako token new NAME\" makes a token and prints what to put into config.http.auth.tokens" }}
{{- end }}
{{- $several := or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled }}
{{- if and $several (not (include "hako.shared" .)) }}
{{- fail "more than one replica needs a store that they share: put HAKO_STORE=postgres://... into a Secret and name it in secret" }}
{{- end }}
{{- if and $several .Values.persistence.enabled }}
{{- fail "persistence is for one replica: turn it off, what must last lies in PostgreSQL" }}
{{- end }}
{{- end }}

{{/* hako.yaml: what the chart sets, under what the user sets. */}}
{{- define "hako.config" -}}
{{- $chart := dict
    "http" (dict "address" "0.0.0.0:8420")
    "metrics" (dict "address" "0.0.0.0:9090")
    "cache" "/var/lib/hako/cache"
    "lock" "/var/lib/hako/hako.lock.yaml"
    "policy" "/etc/hako/hako.policy.yaml"
    "shutdown" (dict "grace" "2m")
    "consents" (ternary "/etc/hako/hako.consents.yaml" "/var/lib/hako/hako.consents.yaml" (not (empty .Values.consents))) }}
{{- if include "hako.shared" . }}
{{- $_ := set $chart "secrets" (dict "key" (dict "env" "HAKO_SECRETS_KEY")) }}
{{- $_ := set $chart "audit" (dict "key" (dict "env" "HAKO_AUDIT_KEY")) }}
{{- $_ := set $chart "postgres" (dict "dir" "/var/lib/hako/store") }}
{{- end }}
{{- if .Values.plugins.volume }}{{ $_ := set $chart "plugins" (list "/plugins") }}{{ end }}
{{- if not (include "hako.shared" .) }}{{ $_ := set $chart "store" "/var/lib/hako/store" }}{{ end }}
{{- toYaml (mergeOverwrite $chart .Values.config) }}
{{- end }}

{{/* How long Kubernetes waits for a pod to end: preStop, shutdown.grace, and the time in which hako gives up what is left. */}}
{{- define "hako.terminationSeconds" -}}
{{- $grace := (include "hako.config" . | fromYaml).shutdown.grace | toString -}}
{{- if or (not $grace) (not (regexMatch "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$" $grace)) -}}
{{- fail (printf "config.shutdown.grace is %q: write hours, minutes and whole seconds, such as 90s or 1m30s, for terminationGracePeriodSeconds follows from it" $grace) -}}
{{- end -}}
{{- $hours := regexFind "[0-9]+h" $grace | trimSuffix "h" | int -}}
{{- $minutes := regexFind "[0-9]+m" $grace | trimSuffix "m" | int -}}
{{- $seconds := regexFind "[0-9]+s" $grace | trimSuffix "s" | int -}}
{{- add (mul 3600 $hours) (mul 60 $minutes) $seconds 20 -}}
{{- end }}
