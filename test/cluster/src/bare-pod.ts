/** A pod of `image` under the restricted standard that runs a Python script and nothing of the product. */
export const barePod = (name: string, image: string, script: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 0,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'bare',
        image,
        imagePullPolicy: 'IfNotPresent',
        command: ['/usr/bin/python3', '-I', '-c', script],
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        resources: { limits: { cpu: '500m', memory: '64Mi' } },
        volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
      },
    ],
    volumes: [{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '16Mi' } }],
  },
});
