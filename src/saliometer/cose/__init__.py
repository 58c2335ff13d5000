"""COSE (Daroya et al., 2023): pairs of images or models, what undoes a transform on maps, what rows say of pairs."""
