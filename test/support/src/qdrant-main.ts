import { describeQdrant, findQdrant } from './qdrant.js';

// Installs the stand-in if it is needed, and prints which Qdrant the tests will use.
console.error(describeQdrant(await findQdrant()));
