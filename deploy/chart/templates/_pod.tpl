{{/* What all our pods share: account, place, priority and limits of what they may do. */}}
{{- define "rematch.podspec" -}}
serviceAccountName: {{ include "rematch.account" . | quote }}
{{- if .Values.priorityClass.create }}
priorityClassName: rematch
{{- else if .Values.priorityClass.name }}
priorityClassName: {{ .Values.priorityClass.name | quote }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "rematch.container" -}}
image: {{ include "rematch.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
{{- end }}

{{/* The pod of the controller, the same in a Deployment and in a StatefulSet. */}}
{{- define "rematch.pod" -}}
metadata:
  labels:
    {{- merge (include "rematch.labels" . | fromYaml) (.Values.podLabels | default dict) | toYaml | nindent 4 }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "rematch.podspec" . | nindent 2 }}
  containers:
    - name: rematch
      {{- include "rematch.container" . | nindent 6 }}
      args:
        - run
        - --configmap={{ .Release.Namespace }}/rematch
        {{- if .Values.store.postgresql.secretName }}
        - --store=@/etc/rematch/store/url
        - --models=/var/lib/rematch/rematch
        {{- else }}
        - --store=/var/lib/rematch/rematch.db
        {{- end }}
        - --probe-bind=0.0.0.0
        - --probe-port=8081
        - --log-format=json
        - --log-level={{ .Values.logLevel }}
        {{- if .Values.dashboard.expose }}
        - --bind=0.0.0.0
        - --auth=token
        {{- range .Values.dashboard.allowedHosts }}
        - {{ printf "--allowed-host=%s" . | quote }}
        {{- end }}
        {{- end }}
        {{- if .Values.externalMetrics.enabled }}
        - --external-metrics-port=6443
        {{- end }}
        {{- if .Values.latency.brokerSecretName }}
        - --broker-credentials=/etc/rematch/broker
        - {{ printf "--broker-host=%s" (required "latency.brokerHost: the only host that gets the credentials of latency.brokerSecretName" .Values.latency.brokerHost) | quote }}
        {{- with .Values.latency.caKey }}
        - {{ printf "--broker-ca-file=/etc/rematch/broker/%s" . | quote }}
        {{- end }}
        {{- end }}
        {{- range .Values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        - {name: XDG_CACHE_HOME, value: /var/lib/rematch} # compiled kernels: the image is read-only
        {{- if .Values.store.postgresql.secretName }}
        {{- if eq (int .Values.replicas) 1 }}
        - {name: REMATCH_STORE_SCHEMA, value: rematch}
        {{- else }}
        - name: REMATCH_STORE_SCHEMA
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- end }}
        {{- end }}
      ports:
        - {name: probes, containerPort: 8081}
        {{- if .Values.externalMetrics.enabled }}
        - {name: ext-metrics, containerPort: 6443}
        {{- end }}
        - {name: http, containerPort: 8080} # on loopback unless dashboard.expose; `kubectl port-forward` reaches it there
      readinessProbe: {httpGet: {path: /readyz, port: probes}, periodSeconds: 5}
      livenessProbe: {httpGet: {path: /healthz, port: probes}, periodSeconds: 10, failureThreshold: 6}
      volumeMounts:
        - {name: store, mountPath: /var/lib/rematch}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.store.postgresql.secretName }}
        - {name: store-url, mountPath: /etc/rematch/store, readOnly: true}
        {{- end }}
        {{- if .Values.externalMetrics.enabled }}
        - {name: external-metrics, mountPath: /etc/rematch/external-metrics, readOnly: true}
        {{- end }}
        {{- if .Values.latency.brokerSecretName }}
        - {name: broker, mountPath: /etc/rematch/broker, readOnly: true}
        {{- end }}
  volumes:
    {{- if .Values.externalMetrics.enabled }}
    - name: external-metrics
      secret: {secretName: {{ .Values.externalMetrics.secretName | default "rematch-external-metrics" }}}
    {{- end }}
    {{- if .Values.latency.brokerSecretName }}
    - name: broker
      secret: {secretName: {{ .Values.latency.brokerSecretName | quote }}}
    {{- end }}
    - name: tmp
      emptyDir: {}
    {{- if .Values.store.postgresql.secretName }}
    - name: store-url
      secret:
        secretName: {{ .Values.store.postgresql.secretName | quote }}
        items: [{key: {{ .Values.store.postgresql.key | quote }}, path: url}]
    - name: store # trained models: when they are lost, the next training makes them again
      emptyDir: {}
    {{- else if eq (int .Values.replicas) 1 }}
    - name: store
      persistentVolumeClaim: {claimName: rematch}
    {{- end }}
  {{- if .Values.affinity }}
  affinity: {{- toYaml .Values.affinity | nindent 4 }}
  {{- else if gt (int .Values.replicas) 1 }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels: {{- include "rematch.selector" . | nindent 16 }}
  {{- end }}
{{- end }}
