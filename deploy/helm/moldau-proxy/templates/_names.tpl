{{/* Name of the Deployment and the Service. */}}
{{- define "proxy.name" -}}
{{- printf "%s-proxy" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "proxy.labels" -}}
app.kubernetes.io/name: moldau-proxy
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
