// `npm run pin:generation -- --because "why"`: records the contracts' present hashes. Without a
// bump the reason has to say why old and new processes still understand each other.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  CONTRACTS,
  hashContract,
  PINNED_PATH,
  type Pinned,
  readPinned,
} from './generation-contract.ts';

const { values } = parseArgs({ options: { because: { type: 'string' } } });
const because = values.because ?? '';
if (because.length < 10) {
  process.stderr.write('Say why: --because "…" (at least 10 characters)\n');
  process.exit(2);
}

function pinnedBefore(): Record<string, Pinned> {
  try {
    return readPinned();
  } catch {
    return {};
  }
}

const pinned = pinnedBefore();
for (const contract of CONTRACTS) {
  const hash = await hashContract(contract);
  if (pinned[contract.name]?.hash === hash) continue;
  pinned[contract.name] = { generation: contract.generation, hash, because };
  process.stdout.write(`${contract.name}: generation ${contract.generation}, ${hash}\n`);
}
writeFileSync(PINNED_PATH, `${JSON.stringify(pinned, null, 2)}\n`);
