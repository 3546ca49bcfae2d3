import { DeadLetterSchema, type Queues, QueueSchema, SandboxControllerSchema, TenantSchema } from '@etude/contracts/gen/etude/v1/queues_pb';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { EtudeError } from '@etude/contracts/errors';
import { hasRole } from '@etude/platform/auth';
import { type DeadLetter, DeadLetters, type QueueCounts } from '@etude/queue/jobs/dead-letters';
import type { AuditLog } from '@etude/queue/audit/audit-log';
import type { ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import type { Tenants } from '@etude/queue/spend/spend-store';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import { toWire } from '@etude/contracts/wire/messages';
import { askedPage } from '../wire/names.js';
import { invalidField, parseField } from '@etude/contracts/wire/validation';

const PAGE = { max: 1_000, standard: 50 };
const IDS_MAX = 1_000;

interface QueueDeps {
  readonly dead: DeadLetters;
  readonly directory: ControllerDirectory;
  readonly tenants: Tenants;
  readonly audit: AuditLog;
}

/** `etude.v1.Queues`, for operators: it covers all tenants. */
export const queueCalls = {
  async listQueues(_request, _call, deps) {
    const [queues, controllers] = await Promise.all([deps.dead.queues(), deps.directory.live()]);
    return {
      queues: queues.map(queueMessage),
      sandboxControllers: controllers.map((one) => toWire(SandboxControllerSchema, { ...one, id: one.controllerId })),
    };
  },

  async listDeadLetters(request, _call, deps) {
    const { queue } = request;
    const { pageSize, after, tokenOf } = askedPage(request, PAGE, ['ListDeadLetters', queue]);
    const { items, nextAfter } = await deps.dead.list(queue, { pageSize, after: after ?? undefined });
    return { deadLetters: items.map(deadLetterMessage), nextPageToken: tokenOf(nextAfter) };
  },

  async redriveDeadLetters(request, _call, deps) {
    const { queue, ids, all } = request;
    if (all === ids.length > 0) throw invalidField('ids', 'name the dead letters to redrive, or set `all` and name none');
    if (ids.length > IDS_MAX) throw invalidField('ids', `must have at most ${IDS_MAX} entries, but has ${ids.length}`);
    const { redriven, refused } = await deps.dead.redrive(queue, all ? { all } : { ids: [...new Set(ids)] });
    return { redriven, refused: [...refused] };
  },

  async listTenants(request, _call, deps) {
    const { pageSize, after, tokenOf } = askedPage(request, PAGE, ['ListTenants']);
    const { items, nextAfter } = await deps.tenants.list({ pageSize, after: after ?? undefined });
    return {
      tenants: items.map(({ tenant, ...use }) => toWire(TenantSchema, { name: tenant, ...use })),
      nextPageToken: tokenOf(nextAfter),
    };
  },

  async listAudit(request, call, { audit }) {
    const tenant = request.tenant || call.tenant;
    if (tenant !== call.tenant && !hasRole(call.roles, 'operator'))
      throw new EtudeError('PERMISSION_DENIED', 'The audit log of another tenant needs the role "operator".');
    const days = parseField(Days, request.days, 'days');
    const { pageSize, after, tokenOf } = askedPage(request, PAGE, ['ListAudit', tenant, String(days)]);
    const { items, nextAfter } = await audit.list(tenant, { pageSize, after: after ?? undefined, days });
    const entries = items.map(({ at, ...entry }) => ({ ...entry, roles: [...entry.roles], time: timestampFromMs(at) }));
    return { entries, nextPageToken: tokenOf(nextAfter) };
  },
} satisfies Handlers<typeof Queues, QueueDeps>;

const Days = z.number().int().min(0).max(3_650);

const queueMessage = (counts: QueueCounts) => toWire(QueueSchema, { ...counts, oldestWaitingMs: Math.max(0, counts.oldestWaitingMs) });

const deadLetterMessage = (letter: DeadLetter) =>
  toWire(DeadLetterSchema, { ...letter, payloadJson: JSON.stringify(letter.payload) ?? '' });
