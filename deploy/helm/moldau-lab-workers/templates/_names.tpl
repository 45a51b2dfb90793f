{{/* Name of the Job and the Service. Pods add an index, and the name of a host has 63 characters at most. */}}
{{- define "workers.name" -}}
{{- printf "%s-workers" .Release.Name | trunc 58 | trimSuffix "-" -}}
{{- end -}}

{{- define "workers.labels" -}}
app.kubernetes.io/name: moldau-lab-workers
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
