import 'reflect-metadata';
import { runWorker } from '@etude/platform/run-service';
import { rolloutWorkerConfig, startRolloutWorker } from './rollout-worker.js';

await runWorker('rollout-worker', rolloutWorkerConfig, startRolloutWorker);
