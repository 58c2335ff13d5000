"""Each paper's methods with its parameters, as the protocol sheets smerf 4.2, fidelity 1.3 and cose 4 give them."""

from saliometer.registry import one_of

SMERF = {  # as the paper's plots call them
    "G": "gradient",
    "SG": "smooth_grad(draws=64,noise=0.1,scale=absolute,squared=true)",
    "DCN": "deconvnet",
    "GBP": "guided_backprop",
    "DT": "deep_taylor(bias=full)",
    "I*G": "input_x_gradient",
    "IG": "integrated_gradients(rule=left,steps=64)",
    "LRP-z": "lrp_z",
    "LRP-eps": "lrp_epsilon",
    "LRP-A-beta": "lrp_preset_a_flat(bias=full)",
    "LRP-B-beta": "lrp_preset_b_flat(bias=full)",
    "DL-RC": "deeplift_reveal_cancel",
    "DL-R": "deeplift_rescale",
    "G-CAM": "grad_cam(relu=after)",
    "D-SHAP": "deep_shap(count=1000)",
    "Random": "random(channels=3)",
    "Edge": "edge(axis=x,kernel=5)",
}
ZHANG = {  # logits throughout, but for RISE and LIME, which are defined on probabilities
    "Fake-CAM": "fake_cam",
    "Gradient": "gradient",
    "IG": "integrated_gradients",
    "GuidedBP": "guided_backprop",
    "Grad-CAM": "grad_cam",
    "Grad-CAM++": "grad_cam_plus_plus",
    "Score-CAM": "score_cam",
    "RISE": "rise",
    "LIME": "lime(paint=positive)",
    "IBA": "iba",
}
COSE = {  # CAMs explain the logit, the others the probability
    "GradCAM": "grad_cam",
    "GradCAM++": "grad_cam_plus_plus",
    "IG": "integrated_gradients(output=probability,rule=pair,steps=25)",
    "BlurIG": "blur_ig(output=probability,scheme=pair)",
    "GuidedIG": "guided_ig(output=probability)",
    "SmoothGrad": "smooth_grad(draws=50,output=probability,squared=true)",
    "LIME": "lime(fill=zero,on=input,paint=sign_top10)",
}
PRESETS = {"smerf": SMERF, "zhang": ZHANG, "cose": COSE}


def preset(name: str) -> list[str]:
    """A paper's methods as specs."""
    return list(PRESETS[one_of("preset", name, PRESETS)].values())
