// What main thread and reader thread say to each other.

/** A segment opened ahead by the main thread, without O_APPEND, and its index, with it. */
export interface OpenSegment {
  readonly index: number;
  readonly fd: number;
  readonly indexFd: number;
}

export type ToReader =
  | {
      readonly t: 'add';
      readonly slot: number;
      readonly master: number;
      readonly pipeRead: number;
      readonly pipeWrite: number;
      /** 16 bytes, allocated: where the range being lost is counted when the disk is full. */
      readonly lostFd: number;
      readonly from: number;
      readonly segments: readonly OpenSegment[];
    }
  | { readonly t: 'segment'; readonly slot: number; readonly segment: OpenSegment }
  | { readonly t: 'remove'; readonly slot: number }
  | { readonly t: 'resize'; readonly slot: number; readonly cols: number; readonly rows: number }
  | { readonly t: 'stop' };

export type FromReader =
  /** The journals of these slots grew. */
  | { readonly t: 'grew'; readonly slots: readonly number[] }
  /** Hung up and drained: nothing follows. */
  | { readonly t: 'closed'; readonly slot: number; readonly offset: number }
  /** This segment is full and no longer used by the reader. */
  | { readonly t: 'filled'; readonly slot: number; readonly index: number }
  | {
      readonly t: 'resized';
      readonly slot: number;
      readonly offset: number;
      readonly cols: number;
      readonly rows: number;
    }
  | { readonly t: 'lost'; readonly slot: number; readonly from: number; readonly to: number }
  | { readonly t: 'disk'; readonly slot: number; readonly errno: string }
  /** No descriptor of this slot is used any more. */
  | { readonly t: 'removed'; readonly slot: number }
  | { readonly t: 'stopped' }
  | { readonly t: 'failed'; readonly message: string };

/** To the model, over its own port. */
export type ReaderToModel =
  | { readonly t: 'grew'; readonly slots: readonly number[] }
  | {
      readonly t: 'resized';
      readonly slot: number;
      readonly offset: number;
      readonly cols: number;
      readonly rows: number;
    }
  | { readonly t: 'lost'; readonly slot: number; readonly from: number; readonly to: number };
