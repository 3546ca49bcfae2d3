import { Agents } from './gen/etude/v1/agents_pb.js';
import { Consolidation } from './gen/etude/v1/consolidation_pb.js';
import { Memory } from './gen/etude/v1/memory_pb.js';
import { Queues } from './gen/etude/v1/queues_pb.js';
import { Sandboxes } from './gen/etude/v1/sandboxes_pb.js';
import { Skills } from './gen/etude/v1/skills_pb.js';
import { Tasks } from './gen/etude/v1/tasks_pb.js';
import { Tools } from './gen/etude/v1/tools_pb.js';

/** Every service of `etude.v1`, for server, reflection and clients. */
export const SERVICES = [Tasks, Skills, Memory, Consolidation, Queues, Sandboxes, Agents, Tools] as const;
export const PACKAGE = 'etude.v1';
