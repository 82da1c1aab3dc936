// A film as a video: the browser records a canvas while its frames are drawn, at the film's own pace.
// No program is needed. MP4 where the browser has its usual codec, else WebM.
const VIDEO_KINDS = [
  ["video/mp4;codecs=avc1.42E01E", "mp4"], ["video/webm;codecs=vp9", "webm"], ["video/webm", "webm"], ["video/mp4", "mp4"],
];
const BITS = 6e6; // a second
const recordVideo = async (times, pictures) => {
  const [type, ending] = VIDEO_KINDS.find(([name]) => MediaRecorder.isTypeSupported(name));
  const frames = await Promise.all(pictures.map((bytes) => createImageBitmap(new Blob([bytes], { type: "image/jpeg" }))));
  const canvas = make("canvas", "", { width: frames[0].width, height: frames[0].height }), context = canvas.getContext("2d");
  context.drawImage(frames[0], 0, 0);
  const stream = canvas.captureStream(30), recorder = new MediaRecorder(stream, { mimeType: type, videoBitsPerSecond: BITS });
  const parts = [], ended = new Promise((done, failed) => { recorder.onstop = done; recorder.onerror = failed; });
  recorder.ondataavailable = (e) => parts.push(e.data);
  recorder.start();
  let due = performance.now();
  for (const [i, frame] of frames.entries()) {
    // A frame that stands is drawn again and again: a canvas that does not change gives no frames.
    for (due += times[i]; performance.now() < due; ) {
      context.drawImage(frame, 0, 0);
      await new Promise((done) => setTimeout(done, Math.min(40, Math.max(0, due - performance.now()))));
    }
  }
  recorder.stop();
  await ended;
  stream.getTracks().forEach((track) => track.stop());
  return { video: new Blob(parts, { type: type.split(";")[0] }), ending };
};
