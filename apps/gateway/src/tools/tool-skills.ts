import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency } from '@etude/contracts/skill-proof';
import type { MemoryOutbox } from '@etude/domain/ports/memory';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { findSkill, ownersFor, searchSkills, viewOf } from '@etude/domain/skills/life/find-skill';
import type { TemplateFor } from '@etude/domain/skills/life/skill-packages';
import { loadFunctions } from '@etude/domain/skills/proof/load-functions';
import { useSkill, wholeCode } from '@etude/domain/skills/proof/use-skill';
import type { BundledCode, SkillCall, SkillFinder, SkillRunner, SkillUse, ToolReader } from '@etude/domain/tools/tool-ports';
import type { MemoryAccess } from '../calls/memory-access.js';

const PAGE = 500;
/** More are not listed by category; they are searched for. */
const LISTED_MAX = 10_000;

/** Active skills out of memory. */
export class MemorySkillFinder implements SkillFinder {
  constructor(private readonly memory: MemoryAccess) {}

  async search(reader: ToolReader, query: { readonly text: string; readonly limit: number; readonly similarityMin: number }) {
    const { procedural } = await this.memory.open();
    return searchSkills(procedural, reader, query);
  }

  async find(reader: ToolReader, name: string): Promise<Skill | null> {
    return findSkill((await this.memory.open()).procedural, reader, name);
  }

  async list(reader: ToolReader): Promise<readonly Skill[]> {
    const byName = new Map<string, Skill>();
    const views = [...new Map(ownersFor(reader).map((owner) => [`${owner.tenant} ${owner.agent}`, owner])).values()];
    for (const owner of views)
      for await (const skill of this.#active(viewOf(owner, reader.user))) {
        const known = byName.get(skill.name);
        // Of one owner the user's own come behind nobody's.
        if (known === undefined || (skill.scope.user !== null && known.scope.agent === skill.scope.agent)) byName.set(skill.name, skill);
        if (byName.size >= LISTED_MAX) break;
      }
    return [...byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  async countOffers(skills: readonly Skill[]): Promise<void> {
    if (skills.length === 0) return;
    const { procedural } = await this.memory.open();
    await procedural.countOffers(skills.map(({ scope, name, version }) => ({ ...scope, name, version })));
  }

  async *#active(view: ReturnType<typeof viewOf>): AsyncGenerator<Skill> {
    const { procedural } = await this.memory.open();
    for (let from = {}; ;) {
      const page = await procedural.list(view, { status: 'active', limit: PAGE, ...from });
      yield* page;
      const end = page.at(-1);
      if (end === undefined || page.length < PAGE) return;
      from = { afterName: end.name, afterAgent: end.scope.agent, afterUser: end.scope.user };
    }
  }
}

export interface SkillRunnerParts {
  readonly memory: MemoryAccess;
  readonly sandboxes: Sandboxes;
  readonly outbox: MemoryOutbox;
  readonly checker: ProofChecker;
  readonly templateFor: TemplateFor;
}

/** Runs what is proven, in sandboxes, and counts it. */
export class ProvenSkillRunner implements SkillRunner {
  constructor(private readonly parts: SkillRunnerParts) {}

  async use(reader: ToolReader, call: SkillCall, signal: AbortSignal): Promise<SkillUse | null> {
    const { memory, sandboxes, outbox, checker, templateFor } = this.parts;
    const { procedural } = await memory.open();
    const used = await useSkill(
      { reader, ...call },
      { procedural, sandboxes, outbox, checker, templateFor, clock: { now: Date.now } },
      signal,
    );
    if (used.outcome === 'not_found') return null;
    const { success, name, version, result, resultNote, output, error, durationMs } = used;
    return { success, name, version, result, resultNote, output, error, durationMs };
  }

  async find(reader: ToolReader, names: readonly string[]) {
    const { procedural } = await this.parts.memory.open();
    const { functions, pins } = await loadFunctions(reader, names, { procedural, checker: this.parts.checker, clock: { now: Date.now } });
    return { functions, pins };
  }

  bundle(reader: ToolReader, pins: readonly SkillDependency[], code: string): Promise<BundledCode> {
    return bundled(reader, pins, code, this.parts);
  }
}

/** Code with these skills in front of it, and the sandbox that has their packages. @throws EtudeError FAILED_PRECONDITION */
export async function bundled(
  { tenant, agent, user }: ToolReader,
  pins: readonly SkillDependency[],
  code: string,
  { memory, checker, templateFor }: Pick<SkillRunnerParts, 'memory' | 'checker' | 'templateFor'>,
): Promise<BundledCode> {
  const { procedural } = await memory.open();
  const caller = { name: 'the code', scope: { tenant, agent, user }, code, dependencies: [...pins] };
  const whole = await wholeCode(caller, { procedural, checker });
  const template = whole.packages.length === 0 ? undefined : templateFor(whole.packages);
  return template === undefined ? { code: whole.code } : { code: whole.code, template };
}
