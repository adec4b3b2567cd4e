{{- define "umg.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}
{{- define "umg.selector" -}}
app.kubernetes.io/name: umg
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "umg.proxySelector" -}}
app.kubernetes.io/name: umg-proxy
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "umg.labels" -}}
{{ include "umg.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{- define "umg.secret" -}}
{{- .Values.existingSecret | default (printf "%s-secrets" (include "umg.name" .)) -}}
{{- end }}
