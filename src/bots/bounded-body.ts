// The body of a download, read up to a bound and no further: sizes that were announced are not
// trusted.

/** The bytes, or undefined when there are more than `maxBytes`. */
export async function boundedBody(
  response: Response,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  if (response.body === null) return new Uint8Array();
  const body: ReadableStream<Uint8Array> = response.body;
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    sizeBytes += value.length;
    if (sizeBytes > maxBytes) {
      await reader.cancel();
      return undefined;
    }
    chunks.push(value);
  }
}
