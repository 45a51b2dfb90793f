{{/* Name of the StatefulSet and the Services. Pods add an index, and the name of a host has 63 characters at most. */}}
{{- define "cluster.name" -}}
{{- printf "%s-kafka" .Release.Name | trunc 54 | trimSuffix "-" -}}
{{- end -}}

{{- define "cluster.labels" -}}
app.kubernetes.io/name: moldau-cluster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
