import { decodeStatus } from '@etude/contracts/rich-status';
import type { ServiceError } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { gatewayForFile } from './gateway.harness.js';

const rig = gatewayForFile({ ETUDE_CALLS_PER_TENANT_MAX: '1' });

it('refuses calls of a tenant above the limit, and takes calls of other tenants', async () => {
  const many = Array.from({ length: 50 }, () =>
    rig
      .tasks('acme')
      .listTasks({})
      .then(
        () => 'OK',
        ({ metadata }: ServiceError) => decodeStatus(metadata)?.code,
      ),
  );
  await expect(rig.tasks('globex').listTasks({})).resolves.toMatchObject({ tasks: [] });
  expect(new Set(await Promise.all(many))).toEqual(new Set(['OK', 'TOO_MANY_CALLS']));
  await expect(rig.tasks('acme').listTasks({})).resolves.toMatchObject({ tasks: [] });
});
