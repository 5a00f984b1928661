// Judges the incarnation record in argv[2], from wherever it is run: another namespace, another
// user, a /proc that hides. Writes the judgement as JSON.

import {
  judgeIncarnation,
  ProcessIncarnationSchema,
} from '../../src/ownership/process-incarnation.ts';
import { systemObserver } from '../../src/ownership/process-observer.ts';

const record = ProcessIncarnationSchema.parse(JSON.parse(process.argv[2] ?? ''));
process.stdout.write(`${JSON.stringify(judgeIncarnation(record, systemObserver))}\n`);
