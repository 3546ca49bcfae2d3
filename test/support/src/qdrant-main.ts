import { describeQdrant, findQdrant } from './qdrant.js';

// Installs the stand-in where that is needed, and says which Qdrant the tests will use.
console.error(describeQdrant(await findQdrant()));
