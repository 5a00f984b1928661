// What main thread and model thread say to each other. Results that only pass through to a client
// travel packed, so that the main thread copies bytes and builds no objects.

export interface OpenModel {
  readonly t: 'open';
  readonly slot: number;
  readonly directory: string;
  /** Size at offset 0; later ones come from the index. */
  readonly cols: number;
  readonly rows: number;
  /** What was journaled before now is a replay: nothing in it is answered. */
  readonly liveFrom: number;
}

/** What a client can ask of a session's model. */
export type ModelQuery =
  | { readonly op: 'frame' }
  | { readonly op: 'snapshot' }
  | { readonly op: 'read-lines'; readonly from: number; readonly to: number }
  | { readonly op: 'read-marks'; readonly from: number; readonly max: number };

export type ToModel =
  | OpenModel
  | { readonly t: 'close'; readonly slot: number }
  /** One more view, as soon as it differs from the last one sent. */
  | { readonly t: 'want-view'; readonly slot: number; readonly fresh: boolean }
  | { readonly t: 'query'; readonly id: number; readonly slot: number; readonly query: ModelQuery }
  /** The program ended when its output had this length: all rows become final there. */
  | { readonly t: 'exited'; readonly slot: number; readonly offset: number }
  /** Another program has the terminal's foreground. */
  | { readonly t: 'program-changed'; readonly slot: number }
  /** A successor will replay: take a checkpoint of everything now, and answer `prepared`. */
  | { readonly t: 'prepare' }
  /** Nothing more comes: close everything and answer `stopped`. */
  | { readonly t: 'stop' };

export interface ModelProgress {
  readonly offset: number;
  readonly finalCount: number;
  readonly markCount: number;
  /** A restart replays from here: nothing before it is needed. */
  readonly checkpointOffset: number;
  /** First line still kept. */
  readonly firstLine: number;
}

export type FromModel =
  /** A view, packed. */
  | {
      readonly t: 'view';
      readonly slot: number;
      readonly payload: Uint8Array;
      readonly progress: ModelProgress;
    }
  | { readonly t: 'progress'; readonly slot: number; readonly progress: ModelProgress }
  /** Answers to the program's queries: for its terminal, now or never. */
  | { readonly t: 'answers'; readonly slot: number; readonly bytes: Uint8Array }
  | { readonly t: 'result'; readonly id: number; readonly payload: Uint8Array }
  | { readonly t: 'refused'; readonly id: number; readonly message: string }
  /** The exit has been applied: what is shown is what was. */
  | { readonly t: 'finished'; readonly slot: number }
  | { readonly t: 'session-failed'; readonly slot: number; readonly message: string }
  | { readonly t: 'closed'; readonly slot: number }
  | { readonly t: 'prepared' }
  | { readonly t: 'stopped' };
