import { Calls } from './calls.js';
import { Memory } from './memory.js';
import { Sandboxes } from './sandboxes.js';
import type { ClientSettings } from './settings.js';
import { Skills } from './skills.js';
import { Tasks } from './tasks.js';

export type { CallSettings } from './calls.js';
export * from './errors.js';
export { SkillStatus } from './gen/etude/v1/skills_pb.js';
export { StopReason, TaskState, Verdict } from './gen/etude/v1/tasks_pb.js';
export type { FactOptions, Memory, MemoryOwner, MemorySearch } from './memory.js';
export type { Execution, RunOptions, Sandbox, Sandboxes, SandboxOptions } from './sandboxes.js';
export type { ClientSettings, Key, Tls } from './settings.js';
export type { Owner, RegisterOptions, Skills, SkillSearch, SkillTest, SkillVersion } from './skills.js';
export type { Task, TaskOptions, Tasks, WaitOptions } from './tasks.js';

/** A client of one gateway. */
export class Etude {
  readonly tasks: Tasks;
  readonly skills: Skills;
  readonly memory: Memory;
  readonly sandboxes: Sandboxes;
  readonly #calls: Calls;

  constructor(settings: ClientSettings = {}) {
    this.#calls = new Calls(settings);
    this.tasks = new Tasks(this.#calls);
    this.skills = new Skills(this.#calls);
    this.memory = new Memory(this.#calls);
    this.sandboxes = new Sandboxes(this.#calls);
  }

  /** "host:port" of the gateway. */
  get address(): string {
    return this.#calls.address;
  }

  /** Ends the connection. */
  close(): void {
    this.#calls.close();
  }
}
