import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { qdrantPlace } from './qdrant-under-test.js';
import { upkeepUnderKills } from './upkeep-kills.js';

describeOnQdrant({ name: 'upkeep' }, (server) => {
  const place = () => {
    const collectionPrefix = `u${randomUUID().slice(0, 8)}`;
    onTestFinished(() => server().drop(collectionPrefix));
    return qdrantPlace(server(), collectionPrefix);
  };
  upkeepUnderKills('qdrant', place, { records: 8 });
});
