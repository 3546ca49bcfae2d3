import { describeQdrant, findQdrant } from './qdrant.js';

// Says which Qdrant the tests will use, and installs the stand-in where that is needed. Ends with 3 where there is none.
const source = await findQdrant();
console.log(describeQdrant(source));
process.exitCode = source.kind === 'none' ? 3 : 0;
