{{/* The name of the objects. */}}
{{- define "quorate.fullname" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "quorate" $name) }}{{ $name = printf "%s-quorate" $name }}{{ end -}}
{{- .Values.fullnameOverride | default $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* The name of the service account. */}}
{{- define "quorate.account" -}}
{{- if or .Values.serviceAccount.create .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name | default (include "quorate.fullname" .) -}}
{{- else -}}
{{- fail "serviceAccount.name is empty, and serviceAccount.create is false: name the account that quorate runs as, which nothing else may use, or let the chart create one" -}}
{{- end -}}
{{- end }}

{{/* The labels of the pods, by which the Deployment and the Service find them. */}}
{{- define "quorate.selector" -}}
app.kubernetes.io/name: quorate
app.kubernetes.io/component: daemon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels of all objects. */}}
{{- define "quorate.labels" -}}
{{- with .Values.commonLabels }}{{ toYaml . }}
{{ end -}}
app.kubernetes.io/name: quorate
app.kubernetes.io/part-of: quorate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}

{{/* The image with its tag or digest. */}}
{{- define "quorate.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The lease of this instance, whose name quorate decides. */}}
{{- define "quorate.lease" -}}
{{- if has .Values.instance (list "" "default") }}quorate{{ else }}quorate-{{ .Values.instance }}{{ end -}}
{{- end }}

{{/* GOMEMLIMIT: what was given, else 86 % of the memory limit. */}}
{{- define "quorate.goMemLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | toString -}}
{{- if .Values.goMemLimit -}}
{{- .Values.goMemLimit -}}
{{- else if regexMatch "^[0-9]+Mi$" $limit -}}
{{- printf "%dMiB" (div (mul 86 (trimSuffix "Mi" $limit | int64)) 100) -}}
{{- else if regexMatch "^[0-9]+Gi$" $limit -}}
{{- printf "%dMiB" (div (mul 86 1024 (trimSuffix "Gi" $limit | int64)) 100) -}}
{{- end -}}
{{- end }}

{{/* What values contradict, in words. */}}
{{- define "quorate.check" -}}
{{- if not .Values.repo -}}
{{- fail "repo is empty, which names the Git repository to follow: give it with --set repo=https://git.example.com/platform/etcd.git" -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "quorate.fullname" .)) -}}
{{- fail (printf "the objects would be called %s, and the name of a Service begins with a letter and has letters, digits and dashes only: give another one in fullnameOverride" (include "quorate.fullname" .)) -}}
{{- end -}}
{{- if and (eq .Values.image.tag "latest") (not .Values.image.digest) -}}
{{- fail "image.tag is latest, which does not tell what runs: name a release, or give image.digest" -}}
{{- end -}}
{{- range .Values.env -}}
{{- if has .name (list "POD_NAME" "POD_NAMESPACE" "GOMEMLIMIT") -}}
{{- fail (printf "env has %s, which the chart sets: leave it out; goMemLimit sets GOMEMLIMIT" .name) -}}
{{- end -}}
{{- end -}}
{{- range $key, $_ := merge (dict) .Values.commonLabels .Values.podLabels .Values.monitoring.labels -}}
{{- if regexMatch "^(app\\.kubernetes\\.io/(name|instance|component|part-of|managed-by|version)|helm\\.sh/chart)$" $key -}}
{{- fail (printf "the label %s cannot be changed, for quorate and its release are found by it: leave it out of commonLabels, podLabels and monitoring.labels" $key) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.rbac.clusterWide .Values.rbac.namespaces -}}
{{- fail "rbac.namespaces names some namespaces, and rbac.clusterWide is true: set rbac.clusterWide=false to confine quorate to them, or leave rbac.namespaces out" -}}
{{- end -}}
{{- if not (or .Values.rbac.clusterWide .Values.rbac.namespaces) -}}
{{- fail "rbac.clusterWide is false, and rbac.namespaces is empty, so that quorate could work nowhere: name the namespaces of its clusters in rbac.namespaces" -}}
{{- end -}}
{{- end }}

{{/*
The objects of a file that deploy/ has as well, as those of this release. Takes root and file;
namespace, "" for what belongs to none; labels, more of them; interval, of its scrapes; egress, more rules; port, that of the metrics;
skip, a list of KIND/NAME that are left
out; and keepName, true for names that the project's pages refer to and of which there is one in a
Kubernetes cluster. What else the file calls quorate has the name of this release, also in roleRef and
subjects and expressions, and where it names the namespace quorate-system it names that of the release.
*/}}
{{- define "quorate.objects" -}}
{{- $root := .root -}}
{{- $fullname := include "quorate.fullname" $root -}}
{{- $text := $root.Files.Get .file | replace "'quorate-system' + ':' + 'quorate'" (printf "'%s' + ':' + '%s'" $root.Release.Namespace (include "quorate.account" $root)) | replace "quorate-system" $root.Release.Namespace -}}
{{- range splitList "\n---\n" $text -}}
{{- $o := fromYaml . -}}
{{- if hasKey $o "Error" }}{{ fail (printf "%s: %s" $.file $o.Error) }}{{ end -}}
{{- if not (has (printf "%s/%s" $o.kind $o.metadata.name) ($.skip | default list)) -}}
{{- $labels := merge (dict) ($.labels | default dict) (include "quorate.labels" $root | fromYaml) ($o.metadata.labels | default dict) -}}
{{- $_ := set $o.metadata "labels" $labels -}}
{{- if not $.keepName }}{{ $_ := set $o.metadata "name" (regexReplaceAll "^quorate" $o.metadata.name $fullname) }}{{ end -}}
{{- if $.namespace }}{{ $_ := set $o.metadata "namespace" $.namespace }}{{ end -}}
{{- if $o.roleRef }}{{ $_ := set $o.roleRef "name" (regexReplaceAll "^quorate" $o.roleRef.name $fullname) }}{{ end -}}
{{- range $o.rules -}}
{{- if and (has "leases" (.resources | default list)) .resourceNames -}}
{{- $_ := set . "resourceNames" (list (include "quorate.lease" $root)) -}}
{{- if gt (int $root.Values.shards) 1 -}}
{{- $_ := unset . "resourceNames" -}}{{- /* the names of the shards' leases are not known beforehand */ -}}
{{- $_ := set . "verbs" (list "get" "list" "update") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $.egress }}{{ $_ := set $o.spec "egress" (concat $o.spec.egress $.egress) }}{{ end -}}
{{- if $.port }}{{ $_ := set (first (first $o.spec.ingress).ports) "port" $.port }}{{ end -}}
{{- range dig "spec" "podMetricsEndpoints" list $o }}{{ $_ := set . "interval" $.interval }}{{ end -}}
{{- range $o.subjects -}}
{{- $_ := set . "name" (include "quorate.account" $root) -}}
{{- $_ := set . "namespace" $root.Release.Namespace -}}
{{- end }}
---
{{ toYaml $o }}
{{- end -}}
{{- end -}}
{{- end }}
