// Who people of Slack are: names and user groups, from a bounded cache, so that decoding an event
// waits for nothing. Rights are decided elsewhere, by id, team and group.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Outcome, Person } from '../chat-platform.ts';
import { type Fields, fieldsOf, textField } from '../fields.ts';
import { RecentMap } from '../recent-map.ts';

/** Makes a Web API call. */
export type Call = (method: string, args: Record<string, unknown>) => Promise<Outcome<Fields>>;

const PEOPLE_MAX = 2_000;
const KNOWN_MS = 30 * 60_000;
/** Someone who could not be looked up goes by their id for this long. */
const UNKNOWN_MS = 60_000;
/** Who leaves a group loses its rights by event; this is for events that never came. */
const GROUPS_MS = 5 * 60_000;
/** A group that could not be read for this long has no members: better nobody than someone who left. */
const GROUPS_TRUSTED_MS = 30 * 60_000;

export class SlackPeople {
  readonly #call: Call;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #groups: readonly string[];
  readonly #people: RecentMap<string, Person | 'unknown'>;
  readonly #asked = new Map<string, Promise<Person | undefined>>();
  readonly #members: RecentMap<string, ReadonlySet<string>>;
  #groupsAtMs = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;

  constructor(options: { call: Call; clock: Clock; log: Log; groups: readonly string[] }) {
    this.#call = options.call;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#groups = options.groups;
    this.#members = new RecentMap({
      clock: options.clock,
      capacity: 100,
      ttlMs: GROUPS_TRUSTED_MS,
    });
    this.#people = new RecentMap({
      clock: options.clock,
      capacity: PEOPLE_MAX,
      ttlMs: KNOWN_MS,
    });
  }

  nameOf(id: string): string | undefined {
    const person = this.#people.get(id);
    return person === undefined || person === 'unknown' ? undefined : person.name;
  }

  /** Groups of the configuration that `id` is in, as last seen. */
  rolesOf(id: string): readonly string[] {
    return this.#groups.filter((group) => this.#members.get(group)?.has(id) === true);
  }

  /** Looks a person up, once at a time and from the cache where possible. */
  async lookUp(id: string): Promise<Person | undefined> {
    const known = this.#people.get(id);
    if (known === 'unknown') return undefined;
    if (known !== undefined) return { ...known, roles: this.rolesOf(id) };
    const asked = this.#asked.get(id) ?? this.#ask(id);
    this.#asked.set(id, asked);
    try {
      return await asked;
    } finally {
      this.#asked.delete(id);
    }
  }

  async #ask(id: string): Promise<Person | undefined> {
    const answer = await this.#call('users.info', { user: id });
    const user = answer.kind === 'ok' ? fieldsOf(answer.value['user']) : {};
    if (textField(user, 'id') !== id || user['deleted'] === true) {
      this.#people.set(id, 'unknown', UNKNOWN_MS);
      return undefined;
    }
    const profile = fieldsOf(user['profile']);
    const names = [
      textField(profile, 'display_name'),
      textField(profile, 'real_name'),
      textField(user, 'name'),
    ];
    const person: Person = {
      id,
      space: user['is_stranger'] === true ? undefined : textField(user, 'team_id'),
      roles: this.rolesOf(id),
      isBot: user['is_bot'] === true,
      name: names.find((name) => name !== undefined && name !== '') ?? id,
    };
    this.#people.set(id, person);
    return person;
  }

  /** A profile or a group changed. */
  forget(id: string): void {
    this.#people.delete(id);
  }

  groupsChanged(): void {
    this.#groupsAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Reads the groups that matter, unless they were read a moment ago. */
  async refreshGroups(): Promise<void> {
    if (this.#groups.length === 0) return;
    if (this.#clock.monotonicMs() - this.#groupsAtMs < GROUPS_MS) return;
    this.#refreshing ??= this.#readGroups().finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
  }

  async #readGroups(): Promise<void> {
    this.#groupsAtMs = this.#clock.monotonicMs();
    for (const group of this.#groups) {
      const answer = await this.#call('usergroups.users.list', { usergroup: group });
      if (answer.kind !== 'ok') {
        // Members as last seen stay; nobody is added on a failure, and it is tried again soon.
        this.#log.warn('slack-group.unread', { group, because: answer.detail });
        this.#groupsAtMs = this.#clock.monotonicMs() - GROUPS_MS + UNKNOWN_MS;
        continue;
      }
      const users = answer.value['users'];
      const ids = Array.isArray(users) ? users.filter((user) => typeof user === 'string') : [];
      this.#members.set(group, new Set(ids));
    }
  }
}
