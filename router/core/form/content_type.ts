/** The boundary that a multipart/form-data content type names; undefined for any other type. */
export function boundaryOf(contentType: string): string | undefined {
  const match =
    /^multipart\/form-data[ \t]*;[ \t]*boundary=(?:"([^"\\\r\n]+)"|([^\s";,]+))[ \t]*(?:;[ \t]*charset=[\w"-]+)?$/i
      .exec(contentType.trim());
  const boundary = match?.[1] ?? match?.[2];
  // RFC 2046 allows 70 of these characters, and no space at the end.
  return boundary !== undefined && /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[^ ]$/.test(boundary)
    ? boundary
    : undefined;
}
