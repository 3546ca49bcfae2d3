import type { Embedder } from '@etude/domain/ports/embedder';
import { agentTools, type ToolRegistry } from '@etude/domain/tools/agent-tools';
import type { AgentSettingsStore } from '@etude/queue/agents/agent-settings-store';
import { RedisToolSessions, ToolCalls } from '@etude/queue/agents/tool-sessions';
import type { Producer } from '@etude/queue/jobs/producer';
import type { SkillDeps } from '../registration/skill-registration.js';
import { type CodeSessionParts, SandboxCodeSessions } from './sandbox-code-sessions.js';
import { AgentSkillRegistrar } from './tool-registrar.js';
import { MemorySkillFinder, ProvenSkillRunner } from './tool-skills.js';

export interface ToolServicesParts {
  readonly producer: Producer;
  readonly embedder: Embedder;
  readonly skills: SkillDeps;
  readonly codeSessions: Omit<CodeSessionParts, 'sessions'>;
  /** `{provider}` in the paths of skills as resources. */
  readonly provider: string;
}

/** The agents' tools, over the gateway's memory, sandboxes and queues. Made once. */
export class ToolServices {
  readonly registry: ToolRegistry;
  readonly calls: ToolCalls;
  readonly settings: AgentSettingsStore;

  constructor({ producer, embedder, skills, codeSessions, provider }: ToolServicesParts) {
    const { redis, keys } = producer;
    const { memory, sandboxes, outbox, checker, registration, wishes, settings, templateFor } = skills;
    this.calls = skills.activity;
    this.settings = settings;
    const sessions = new RedisToolSessions(redis, keys);
    this.registry = agentTools({
      embedder,
      sandboxes,
      finder: new MemorySkillFinder(memory),
      runner: new ProvenSkillRunner({ memory, sandboxes, outbox, checker, templateFor }),
      registrar: new AgentSkillRegistrar({ memory, registration, checker, templateFor }),
      wishes,
      sessions,
      codeSessions: new SandboxCodeSessions({ ...codeSessions, sessions }),
      skillPath: (tenant, name) => `/instances/${tenant}/providers/${provider}/skills/${name}`,
    });
  }
}
