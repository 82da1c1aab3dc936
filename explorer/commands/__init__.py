"""The verbs of the command line, one file per topic; `explorer.cli` offers them."""

# Each verb: its file here, and the first line of its docstring. The command shows these lines
# without importing a file, because an import takes seconds.
VERBS = {
    "demo": ("road", "Run the whole road, print a table and write a picture."),
    "train": ("road", "Train a network and save the run, on one thread or on OMP_NUM_THREADS."),
    "attack": (
        "road",
        "Attack trained weights; without the truth nobody can say which claims hold.",
    ),
    "audit": ("audit", "Audit a trained model: what its weights give away of its training points."),
    "show": ("road", "Say what a file holds."),
    "repeat": (
        "share",
        "Do again what a link holds: train, attack, judge; print the numbers of the page.",
    ),
    "film": ("share", "Make a film of the training or of the attack of a saved run."),
    "serve": ("road", "Open the app in a browser."),
    "weight-decay": (
        "decay",
        "Train with weight decay to a stationary point, check it, attack by DecoReco.",
    ),
    "digits": (
        "digits",
        "Attack a network trained on real images: share matched, held-out control, a picture.",
    ),
    "energy": (
        "energy",
        "Map how much of the weights stays unexplained when a training point is elsewhere.",
    ),
    "explain": (
        "explain",
        "Say which other points explain the same weights: splits, masses, the farthest set.",
    ),
    "membership": (
        "membership",
        "Train in high dimension and infer membership: margins, false positives, ROC.",
    ),
    "tune": ("tune", "Tune the KKT attack without the truth; Ctrl-C keeps what is done."),
    "grid": (
        "grid",
        "Run an attack from a grid of starts; write a picture, a table, and one sentence.",
    ),
    "bilevel": (
        "grid",
        "Attack by the bilevel problem from noise, truth and a held-out partition; compare.",
    ),
    "sweep": (
        "sweep",
        "Run every combination of a table of settings, and keep each row as it is finished.",
    ),
    "arena": (
        "sweep",
        "Set attacks side by side on the same networks, with held-out controls and intervals.",
    ),
    "univariate": (
        "univariate",
        "Attack a network of one input: groups, guarantee, proven or likely points.",
    ),
    "settings": (
        "settings",
        "List the settings of an attack or of the training: default, bounds, unit, meaning.",
    ),
}
# Options that had another name once, by the name of now.
RENAMED = {"--seeds": "--seed"}
READER_LEFT = 141  # 128 + SIGPIPE: what a shell says when a reader, such as `head`, has left
