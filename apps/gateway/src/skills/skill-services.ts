import type { CodeAnalyser } from '@etude/domain/ports/code-analyser';
import type { MemoryOutbox } from '@etude/domain/ports/memory';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import type { TemplateFor } from '@etude/domain/skills/life/skill-packages';
import type { AgentSettingsStore } from '@etude/queue/agents/agent-settings-store';
import type { WantedSkills } from '@etude/queue/agents/wanted-skills';
import type { OnModuleDestroy } from '@nestjs/common';
import type { SkillRegistration } from './skill-registration.js';

/** What the controllers of skills use beside memory, made once. */
export interface SkillParts {
  readonly sandboxes: Sandboxes;
  readonly outbox: MemoryOutbox;
  readonly checker: ProofChecker;
  readonly analyser: CodeAnalyser & { close(): Promise<void> };
  /** Share of the mutants that tests have to notice. */
  readonly mutationScoreMin: number;
  /** Which kind of sandbox has the packages of a skill. */
  readonly templateFor: TemplateFor;
  readonly settings: AgentSettingsStore;
  readonly registration: SkillRegistration;
  readonly wanted: WantedSkills;
}

export class SkillServices implements OnModuleDestroy {
  constructor(readonly parts: SkillParts) {}

  async onModuleDestroy(): Promise<void> {
    await this.parts.analyser.close();
  }
}
