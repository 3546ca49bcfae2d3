import { EtudeError } from '@etude/contracts/errors';
import { type Consolidation, ConsolidationRunSchema } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { TENANT_AGENT } from '@etude/contracts/ids';
import { type ConsolidationStore, isOver } from '@etude/queue/memory/consolidation-store';
import type { Handlers } from '../calls/calls.js';
import type { MemoryAccess } from '../calls/memory-access.js';
import { once } from '../calls/once.js';
import { toWire } from '@etude/contracts/wire/messages';
import { askedPage, consolidationRunOfName, optionalAgent, optionalRequestId } from '../wire/names.js';
import { boundedCount } from '@etude/contracts/wire/validation';

const DAYS = { max: 3_650, standard: 7 };
const RUNS = { max: 200, standard: 50 };
const AGENTS = { max: 1_000, standard: 100 };

export const consolidationCalls = {
  async runConsolidation(request, call, { runs }) {
    const { dryRun, force } = request;
    const agent = optionalAgent(request.agent);
    const days = boundedCount(request.days, 'days', DAYS);
    const requestId = optionalRequestId(request.requestId) ?? '';
    const record = await runs.create(call.tenant, { agent, days, dryRun, ...(force ? { force } : {}) }, requestId);
    return toWire(ConsolidationRunSchema, { ...record, name: `consolidationRuns/${record.id}` });
  },

  async listConsolidationRuns(request, { tenant }, { runs }) {
    const { pageSize, after, tokenOf } = askedPage(request, RUNS, ['ListConsolidationRuns', tenant]);
    const { items, nextAfter } = await runs.list(tenant, { pageSize, ...(after ? { after } : {}) });
    const shown = items.map((record) => toWire(ConsolidationRunSchema, { ...record, name: `consolidationRuns/${record.id}`, plan: [] }));
    return { runs: shown, nextPageToken: tokenOf(nextAfter) };
  },

  async getConsolidationRun(request, { tenant }, { runs }) {
    const { name } = request;
    const id = consolidationRunOfName(name);
    const { limit, after, cut } = askedPage(request, AGENTS, ['GetConsolidationRun', tenant, id]);
    const record = await runs.get(tenant, id);
    if (!record) throw unknownRun(name);
    const { items: agents, nextPageToken } = cut(await runs.agents(tenant, id, { limit, after }), (last) => last.agent);
    const plan = [...record.plan, ...agents.flatMap((line) => line.plan)];
    return { ...toWire(ConsolidationRunSchema, { ...record, name, plan, agents }), nextPageToken };
  },

  async undoConsolidation(request, call, { runs, memory: access }) {
    const { tenant, name: by } = call;
    const { name, requestId } = request;
    const [run, agent] = [consolidationRunOfName(name), optionalAgent(request.agent)];
    const record = await runs.get(tenant, run);
    if (record !== null && !isOver(record)) throw new EtudeError('FAILED_PRECONDITION', `${name} is running. Undo the run after its end.`);
    const memory = await access.open();
    const owner = { scope: { agent: agent ?? TENANT_AGENT, user: null } };
    const identified = { tenant, requestId, method: 'UndoConsolidation', body: { ...request } };
    const undone = await once(memory, identified, owner, { act: () => memory.units.undo({ tenant, run, agent, by }) });
    if (undone.length === 0) throw unknownRun(name, `change of ${name} to undo`);
    const names = undone.map((one) => one.agent);
    if (record !== null) await runs.noteUndone(record, names);
    const agents = undone.map(({ kept, ...one }) => ({
      ...one,
      undone: [...one.undone],
      kept: kept.map((item) => `${item.name}: ${item.reason}`),
    }));
    return { agents };
  },
} satisfies Handlers<typeof Consolidation, { readonly runs: ConsolidationStore; readonly memory: MemoryAccess }>;

const unknownRun = (name: string, what = name) => new EtudeError('NOT_FOUND', `There is no ${what}.`, { metadata: { name } });
