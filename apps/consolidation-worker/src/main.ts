import 'reflect-metadata';
import { runWorker } from '@etude/platform/run-service';
import { consolidationWorkerConfig } from './consolidation-worker.config.js';
import { startConsolidationWorker } from './consolidation-worker.js';

await runWorker('consolidation-worker', consolidationWorkerConfig, startConsolidationWorker);
