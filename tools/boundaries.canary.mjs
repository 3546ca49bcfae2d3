// A workspace in which every rule of boundaries.mjs is broken once. Other code in it keeps all rules.

const pkg = (name, type, dependencies = [], devDependencies = []) =>
  JSON.stringify({
    name,
    dependencies: Object.fromEntries(dependencies.map((each) => [each, '*'])),
    devDependencies: Object.fromEntries(devDependencies.map((each) => [each, '*'])),
    ...(type ? { nx: { tags: [type] } } : {}),
  });

const everything = [
  '@etude/contracts',
  '@etude/domain',
  '@etude/queue',
  '@etude/memory',
  '@etude/model',
  '@etude/platform',
  '@etude/test-support',
  'bullmq',
  'ioredis',
  'openai',
  '@qdrant/js-client-rest',
  'sqlite-vec',
  'zod',
  'express',
  'commander',
];

const broken = {
  // Direction.
  'libs/contracts/src/up.ts': ["import { x } from '@etude/domain/x';", 'direction'],
  'libs/domain/src/adapter.ts': ["import type { X } from '@etude/queue/x';", 'direction'],
  'libs/queue/src/sibling.ts': ["export { x } from '@etude/memory/x';", 'direction'],
  'libs/queue/src/platform.ts': ["import { x } from '@etude/platform/x';", 'direction'],
  'libs/platform/src/domain.ts': ["const x = await import('@etude/domain/x');", 'direction'],
  'apps/gateway/src/app.ts': ["import { x } from '@etude/worker/x';", 'direction'],
  'apps/pages/src/domain.tsx': ["import { x } from '@etude/domain/x';", 'direction'],
  'apps/cli/src/domain.ts': ["import { x } from '@etude/domain/x';", 'direction'],
  'libs/queue/src/support.ts': ["import { x } from '@etude/test-support/x';", 'direction'],
  // Vendors.
  'apps/worker/src/bullmq.ts': ["import { Queue } from 'bullmq';", 'vendor'],
  'libs/memory/src/redis.ts': ["import { Redis } from 'ioredis';", 'vendor'],
  'libs/domain/src/openai.ts': ["import OpenAI from 'openai';", 'vendor'],
  'libs/queue/src/sqlite.ts': ["import { DatabaseSync } from 'node:sqlite';", 'vendor'],
  'apps/gateway/src/kubernetes.ts': ["import { KubeConfig } from '@kubernetes/client-node';", 'vendor', 'undeclared'],
  'libs/memory/src/vectors.ts': ["import { QdrantClient } from '@qdrant/js-client-rest';", 'vendor'],
  // The outside.
  'libs/domain/src/file.ts': ["import { readFile } from 'node:fs/promises';", 'outside'],
  'libs/domain/src/short.ts': ["import { readFileSync } from 'fs';", 'outside'],
  'apps/gateway/src/express.ts': ["import express from 'express';", 'outside'],
  'libs/queue/src/undeclared.ts': ["import x from 'left-pad';", 'undeclared'],
  'libs/queue/src/escape.ts': ["import { x } from '../../memory/src/x.js';", 'relative'],
  // Habits.
  'libs/queue/src/bare.ts': ["import { x } from '@etude/contracts';", 'subpath'],
  'libs/queue/src/fake.ts': ["import { x } from '@etude/domain/testing/x';", 'testing'],
  'libs/queue/src/everything.ts': ["export * from './fine.js';", 'barrel'],
  'libs/queue/src/index.ts': ["export { x } from './fine.js';", 'barrel'],
  'libs/queue/src/environment.ts': ["export const x = process.env['X'];", 'environment'],
  // Three folders that import each other in a ring count as one breach, by the folder above them.
  'libs/memory/src/jobs/first.ts': ["import { x } from '../deep/tasks/second.js';"],
  'libs/memory/src/deep/tasks/second.ts': ["import { x } from '../../redis/third.js';"],
  'libs/memory/src/redis/third.ts': ["import { x } from '../jobs/first.js';"],
  'libs/untagged/package.json': [pkg('@etude/untagged', null), 'tag'],
};

const kept = {
  'libs/contracts/src/x.ts': "import { z } from 'zod';\nexport const x = z;",
  'libs/domain/src/x.ts': "import { createHash } from 'node:crypto';\nimport { x } from '@etude/contracts/x';\nexport { x, createHash };",
  'libs/queue/src/fine.ts':
    "import { Queue } from 'bullmq';\nimport { x } from '@etude/domain/x';\n// process.env and import 'openai' in words only\nexport { x, Queue };",
  'libs/queue/src/fine.spec.ts':
    "import { x } from '@etude/domain/testing/x';\nimport { y } from '@etude/test-support/x';\nimport 'vitest';\nprocess.env['X'] = '1';",
  'libs/memory/src/qdrant/store.ts': "import { QdrantClient } from '@qdrant/js-client-rest';\nexport { QdrantClient };",
  'apps/worker/src/main.ts': "import { x } from '@etude/queue/fine';\nexport const y = process.env['X'] ?? x;",
  'test/cluster/vitest.cluster.ts': "export { project } from '../../vitest.config.js';",
  'bench/src/bare.bench.ts': "import { Queue } from 'bullmq';\nimport { x } from '@etude/domain/testing/x';\nexport { x, Queue };",
};

const packages = {
  'package.json': JSON.stringify({ name: 'canary', devDependencies: { vitest: '*' } }),
  'libs/contracts/package.json': pkg('@etude/contracts', 'type:contracts', everything),
  'libs/domain/package.json': pkg('@etude/domain', 'type:domain', everything),
  'libs/queue/package.json': pkg('@etude/queue', 'type:adapter', everything),
  'libs/memory/package.json': pkg('@etude/memory', 'type:adapter', everything),
  'libs/platform/package.json': pkg('@etude/platform', 'type:platform', everything),
  'apps/gateway/package.json': pkg('@etude/gateway', 'type:app', [...everything, '@etude/worker']),
  'apps/worker/package.json': pkg('@etude/worker', 'type:app', everything),
  'apps/cli/package.json': pkg('@etude/cli', 'type:cli', everything),
  'apps/pages/package.json': pkg('@etude/pages', 'type:web', [], everything),
  'test/support/package.json': pkg('@etude/test-support', 'type:support'),
  'bench/package.json': pkg('@etude/bench', 'type:bench', everything),
};

export const canary = {
  files: { ...packages, ...kept, ...Object.fromEntries(Object.entries(broken).map(([file, [text]]) => [file, text])) },
  expected: [
    'folders: libs/memory/src',
    ...Object.entries(broken).flatMap(([file, [, ...rules]]) => rules.map((rule) => `${rule}: ${file}`)),
  ],
};
