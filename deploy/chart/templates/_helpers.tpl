{{- define "rematch.labels" -}}
app.kubernetes.io/name: rematch
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "rematch.selector" -}}
app.kubernetes.io/name: rematch
{{- end }}

{{- define "rematch.account" -}}
{{ .Values.serviceAccount.name | default "rematch" }}
{{- end }}

{{- define "rematch.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The settings, narrowed to the namespaces in which pods may be changed. */}}
{{- define "rematch.settings" -}}
{{- $settings := deepCopy .Values.settings }}
{{- with .Values.rbac.namespaces }}
{{- $managed := get $settings "managed" | default dict }}
{{- range (get $managed "namespaces" | default list) }}
{{- if not (has . $.Values.rbac.namespaces) }}
{{- fail (printf "settings.managed.namespaces names %s, which is not in rbac.namespaces: its pods could not be moved" .) }}
{{- end }}
{{- end }}
{{- range (get $managed "anySchedulerNamespaces" | default list) }}
{{- if not (has . (append $.Values.rbac.namespaces "*")) }}
{{- fail (printf "settings.managed.anySchedulerNamespaces names %s, which is not in rbac.namespaces: its pods could not be moved" .) }}
{{- end }}
{{- end }}
{{- if not (get $managed "namespaces") }}
{{- $_ := set $settings "managed" (merge (dict "namespaces" .) $managed) }}
{{- end }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{/* One rule of a role, with what it is for. */}}
{{- define "rematch.rule" -}}
# {{ .why }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ join ", " .resources }}]
  {{- with .names }}
  resourceNames: [{{ join ", " . }}]
  {{- end }}
  verbs: [{{ join ", " .verbs }}]
{{- end }}
